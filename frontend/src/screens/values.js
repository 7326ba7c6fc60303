export const values = { id: "values", title: "Values", about: "Not written yet.", draw() {} };
