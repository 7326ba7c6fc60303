// The five screens, in the order of their numbers.

import { flame } from "./flame.js";
import { kernels } from "./kernels.js";
import { lines } from "./lines.js";
import { overview } from "./overview.js";
import { timeline } from "./timeline.js";

export const SCREENS = [overview, lines, kernels, timeline, flame];
