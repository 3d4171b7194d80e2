// Runs before the page is drawn, so that it is not first drawn in the other theme.
try {
  const chosen = localStorage.getItem("licorne-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Without storage the system's preference counts.
}
