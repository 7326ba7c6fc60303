export const neighbourhood = { id: "neighbourhood", title: "Neighbourhood", about: "Not written yet.", draw() {} };
