// What the page may do: four functions, and nothing else of Node or Electron.
const { contextBridge, ipcRenderer } = require("electron");

contextBridge.exposeInMainWorld("model", {
  check: () => ipcRenderer.invoke("model:check"),
  ask: (input) => ipcRenderer.invoke("model:ask", input),
  stop: () => ipcRenderer.send("model:stop"),
  onText: (take) => ipcRenderer.on("model:text", (_, text) => take(text)),
});
