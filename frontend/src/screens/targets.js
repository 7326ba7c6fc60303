export const targets = { id: "targets", title: "Targets", about: "Not written yet.", draw() {} };
