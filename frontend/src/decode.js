// The report of a file: a page, or JSON.

import schema from "../../xlamini/inspection/assets/schema.json" with { type: "json" };
import { unpack } from "./unpack.js";

const HOLDER = /<script id="report" type="application\/octet-stream">([A-Za-z0-9+/=\s]*)<\/script>/;

/** The report of a file: what `report.save` or `report.json` wrote. */
export async function fromFile(text) {
  const inPage = HOLDER.exec(text);
  if (inPage) return checked(await unpack(inPage[1]));
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(
      "This file is neither a page nor the JSON of a report. Choose what report.save or report.json wrote.",
    );
  }
  return checked(value);
}

/** The report itself if this page can read it. */
export function checked(report) {
  if (report === null || typeof report !== "object" || !("schema" in report)) {
    throw new Error("This JSON is not a report of xlamini.inspect: it has no schema.");
  }
  if (report.schema !== schema.version) {
    throw new Error(
      `The report has schema ${report.schema}, and this page reads schema ${schema.version}. Use the page of the version that made it.`,
    );
  }
  if (report.targets?.some((target) => target.kernels?.some((kernel) => !kernel.shares))) {
    throw new Error("An earlier xlamini made this report: its kernels have no shares. Inspect the program again.");
  }
  return report;
}
