export const sharding = { id: "sharding", title: "Sharding", about: "Not written yet.", draw() {} };
