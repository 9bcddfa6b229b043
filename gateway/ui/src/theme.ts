/**
 * The theme: light, dark or the system's. The choice is kept in localStorage, and all tabs follow it; theme.js sets it
 * at the start.
 */
export type Theme = "system" | "light" | "dark";

const KEY = "jarvis.theme";

export function theme(): Theme {
  const chosen = document.documentElement.dataset["theme"];
  return chosen === "light" || chosen === "dark" ? chosen : "system";
}

export function setTheme(chosen: Theme): void {
  show(chosen);
  try {
    if (chosen === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, chosen);
  } catch {
    // Without storage, the choice lasts until the page is closed.
  }
}

function show(chosen: Theme): void {
  if (chosen === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = chosen;
}

/** Calls back when another tab has chosen. */
export function followTheme(changed: () => void): void {
  addEventListener("storage", ({ key, newValue }) => {
    if (key !== KEY) return;
    show(newValue === "light" || newValue === "dark" ? newValue : "system");
    changed();
  });
}
