// Links to the pages of `inspect` that were written beside this one.

import { h } from "../dom.js";

const BESIDE = /^[^/\\:?#]+\/\w+\.html$/;

/** A link to the page of a program, on one of its screens, which opens beside this one; null for a program without. */
export function inspection(program, screen, text = `inspect ${program.name.replace(/^jit_/, "")}`) {
  if (!BESIDE.test(program.page ?? "")) return null;
  const link = h("a", { class: "link", target: "_blank", rel: "noopener" }, text);
  link.href = `${program.page}#screen=${screen}`;
  return link;
}

/** The links for the programs of some kernels. */
export function inspections(model, kernels, screen) {
  const its = new Set([...kernels].map((k) => model.kernels[k].program));
  return [...its].map((i) => inspection(model.programs[i], screen)).filter(Boolean);
}
