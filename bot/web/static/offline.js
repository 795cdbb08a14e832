// Opens the console again once Nod can be reached.

const LOOK_AGAIN = 5000; // milliseconds

document.getElementById("again").addEventListener("click", () => location.reload());
setInterval(() => fetch("healthz", { cache: "no-store" }).then(() => location.reload(), () => {}), LOOK_AGAIN);
