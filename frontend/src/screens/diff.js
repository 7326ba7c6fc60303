export const diff = { id: "diff", title: "Diff", about: "Not written yet.", draw() {} };
