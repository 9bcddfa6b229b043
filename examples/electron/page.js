// The page. Without a model the page does not offer the feature, and says why.
const { model } = window;
const form = document.querySelector("form");
const state = document.querySelector("[role=status]");

model.onText((text) => (form.answer.value += text));
form.stop.onclick = () => model.stop();
form.onsubmit = async (event) => {
  event.preventDefault();
  form.answer.value = "";
  state.textContent = "Answering...";
  const { ok, code, detail } = await model.ask(form.question.value);
  state.textContent = ok ? "" : code === "CANCELLED" ? "Stopped." : detail;
};

const { compatible, detail } = await model.check();
form.hidden = !compatible;
state.textContent = compatible ? "" : detail;
