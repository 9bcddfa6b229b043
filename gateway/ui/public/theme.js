/* Sets the theme that the user chose before the first paint. Without a choice the system's holds (theme.css). */
try {
  const chosen = localStorage.getItem("jarvis.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // A browser without storage has the system's theme.
}
