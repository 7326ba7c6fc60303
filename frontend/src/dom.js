// Elements without markup: text enters the page through textContent and attributes through setAttribute, never as HTML.

const SVG = "http://www.w3.org/2000/svg";
const UNSAFE = /^(on|src$|srcdoc$|srcset$|style$|action$|formaction$|xlink:)/i;

/** An HTML element: `h("button", {class: "small", click: f}, "Copy")`. A function is a listener, null is left out. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element, with the arguments of `h`. */
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Replaces what is in `node`. */
export function put(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter(given));
  return node;
}

/** Sets CSS properties; works under a policy that forbids style attributes. */
export function css(node, properties) {
  for (const [name, value] of Object.entries(properties)) node.style.setProperty(name, value);
  return node;
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) set(node, name, value);
  node.append(...children.flat(Infinity).filter(given));
  return node;
}

function set(node, name, value) {
  if (!given(value)) return;
  if (typeof value === "function") return node.addEventListener(name, value);
  if (name === "css") return css(node, value);
  if (UNSAFE.test(name) || (name === "href" && !String(value).startsWith("#"))) throw new Error(`no attribute ${name}`);
  node.setAttribute(name, value === true ? "" : value);
}

const given = (value) => value !== null && value !== undefined && value !== false;
