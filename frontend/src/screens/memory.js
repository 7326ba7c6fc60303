export const memory = { id: "memory", title: "Memory", about: "Not written yet.", draw() {} };
