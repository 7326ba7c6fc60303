export const roofline = { id: "roofline", title: "Roofline", about: "Not written yet.", draw() {} };
