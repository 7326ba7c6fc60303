// The twelve screens, in the order of their numbers.

import { compilations } from "./compilations.js";
import { diff } from "./diff.js";
import { kernels } from "./kernels.js";
import { memory } from "./memory.js";
import { neighbourhood } from "./neighbourhood.js";
import { rewrites } from "./rewrites.js";
import { roofline } from "./roofline.js";
import { sharding } from "./sharding.js";
import { source } from "./source.js";
import { summary } from "./summary.js";
import { targets } from "./targets.js";
import { values } from "./values.js";

export const SCREENS = [
  summary,
  source,
  rewrites,
  kernels,
  roofline,
  memory,
  sharding,
  targets,
  compilations,
  diff,
  values,
  neighbourhood,
];
