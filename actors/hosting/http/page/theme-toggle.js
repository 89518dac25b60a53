// The button that goes from automatic to light to dark.

const ORDER = ["auto", "light", "dark"];

export function themeToggle(button) {
  show(button, document.documentElement.dataset.theme ?? "auto");
  button.addEventListener("click", () => {
    const now = document.documentElement.dataset.theme ?? "auto";
    choose(button, ORDER[(ORDER.indexOf(now) + 1) % ORDER.length]);
  });
}

function choose(button, theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  remember(theme);
  show(button, theme);
}

function remember(theme) {
  try {
    localStorage.setItem("kizuki-theme", theme);
  } catch {
    // Where storage is forbidden the choice lasts as long as the page.
  }
}

function show(button, theme) {
  button.textContent = `Theme: ${theme}`;
}
