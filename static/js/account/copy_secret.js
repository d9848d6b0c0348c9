// The button beside a secret that is shown once.

const button = document.querySelector("[data-copy]");

button?.addEventListener("click", async () => {
  const secret = document.getElementById(button.dataset.copy);
  await navigator.clipboard.writeText(secret.value);
  button.textContent = "Copied";
});
