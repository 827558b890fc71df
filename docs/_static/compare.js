/* Before and after: a range input, so that keys and fingers work, moves the line between two pictures. */
for (const host of document.querySelectorAll(".compare")) {
  const slider = host.querySelector("input");
  const move = () => host.style.setProperty("--at", `${slider.value}%`);
  slider.addEventListener("input", move);
  move();
}
