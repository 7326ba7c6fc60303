// "Copy reproducer": a Python script that runs one equation or one kernel alone, on random inputs.

/** Copies the script of what is chosen, and says so on the button. */
export async function copyReproducer(app, choice, button) {
  const text = reproducer(app.model, choice, app.state.target);
  const done = await copy(text);
  button.textContent = done ? "Copied" : "Copy failed";
  setTimeout(() => (button.textContent = "Copy reproducer"), 1500);
}

/** The script for a choice. */
export function reproducer(model, choice) {
  return choice.kind === "kernel" ? ofKernel(choice.kernel) : ofRow(model, choice.rows[0]);
}

function ofKernel(kernel) { return kernel.hlo; }
function ofRow(model, row) { return model.eq.text[row]; }

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
