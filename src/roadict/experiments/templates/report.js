// The contents mark the section that is being read.
const entries = [...document.querySelectorAll("#contents a")], contents = document.getElementById("contents");
const targets = entries.map(entry => document.getElementById(entry.hash.slice(1)));
const follow = () => {
  const end = innerHeight + scrollY >= document.documentElement.scrollHeight - 2;
  const passed = targets.filter(target => target.getBoundingClientRect().top < innerHeight / 3).length;
  const current = entries[end ? entries.length - 1 : Math.max(0, passed - 1)];
  if (current.classList.contains("here")) return;
  entries.forEach(entry => entry.classList.toggle("here", entry === current));
  entries.forEach(entry => entry.toggleAttribute("aria-current", entry === current));
  if (contents.scrollWidth > contents.clientWidth) contents.scrollLeft = current.offsetLeft - (contents.clientWidth - current.offsetWidth) / 2;
};
addEventListener("scroll", follow, { passive: true });
addEventListener("resize", follow);
follow();
