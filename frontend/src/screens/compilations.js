export const compilations = { id: "compilations", title: "Compilations", about: "Not written yet.", draw() {} };
