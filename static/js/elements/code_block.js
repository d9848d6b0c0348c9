// A block of code with a button that copies it.
import { announce } from "../page/announcer.js";
import { copyFrom } from "../page/clipboard.js";

class CodeBlock extends HTMLElement {
  connectedCallback() {
    if (this.querySelector(":scope > button") !== null) return;
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.added = "";
    button.className = "code-block__copy";
    button.textContent = "Copy";
    button.addEventListener("click", () => this.#copy(button));
    this.append(button);
  }

  #copy(button) {
    copyFrom(button, this.querySelector("code").textContent);
    announce("Copied");
  }
}

customElements.define("code-block", CodeBlock);
