// Texts for other programs.

/** Copies a text; the button says for a moment how it went. */
export async function copied(text, button) {
  const title = (button.dataset.title ??= button.textContent); // a second click comes while it says "Copied"
  button.textContent = (await copy(text)) ? "Copied" : "Copying failed";
  setTimeout(() => (button.textContent = title), 1500);
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyOld(text); // a page from a file or in a frame may lack the clipboard
  }
}

function copyOld(text) {
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}
