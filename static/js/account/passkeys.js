// The buttons that ask the browser for a passkey. The page's JSON says what for; the answer goes with the form.

const button = document.querySelector("[data-passkey]");
const failed = document.querySelector("[data-passkey-failed]");

button?.addEventListener("click", async (event) => {
  event.preventDefault();
  failed.hidden = true;
  const form = button.form;
  try {
    const credential = button.dataset.passkey === "create" ? await created(form) : await asked();
    form.elements.credential.value = JSON.stringify(credential.toJSON());
    form.submit();
  } catch (error) {
    failed.textContent = error.name === "NotAllowedError" ? "No passkey was used." : "This browser could not do that.";
    failed.hidden = false;
  }
});

async function created(form) {
  const { publicKey } = pageData().creation_options;
  const isPasskey = form.elements.passwordless?.checked ?? false;
  publicKey.authenticatorSelection = {
    ...publicKey.authenticatorSelection,
    residentKey: isPasskey ? "required" : "discouraged",
    requireResidentKey: isPasskey,
    ...(isPasskey ? { userVerification: "required" } : {}),
  };
  return navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(publicKey) });
}

async function asked() {
  const { publicKey } = (button.dataset.options ? await fetchedData() : pageData()).request_options;
  return navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(publicKey) });
}

function pageData() {
  return JSON.parse(document.getElementById("passkey-data").textContent);
}

async function fetchedData() {
  const response = await fetch(button.dataset.options, { headers: { Accept: "application/json" } });
  if (!response.ok) throw new Error(`No passkey can be asked for: ${response.status}`);
  return response.json();
}
