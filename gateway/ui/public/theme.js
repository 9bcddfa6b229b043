/* Sets the theme that the user chose before the first paint. Without a choice, the system's theme is used (theme.css). */
try {
  const chosen = localStorage.getItem("jarvis.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Without storage, the system's theme is used.
}
