// A table, picture or chart that is wider than the page is scrolled in its box; the side with more of it fades.
document.addEventListener('DOMContentLoaded', () => {
  const mark = box => {
    box.classList.toggle('more-before', box.scrollLeft > 1)
    box.classList.toggle('more-after', box.scrollLeft + box.clientWidth < box.scrollWidth - 1)
  }
  const resized = new ResizeObserver(entries => entries.forEach(entry => mark(entry.target)))
  document.querySelectorAll('.bd-article :is(.pst-scrollable-table-container, .wide-picture, .site-chart .panels > div)').forEach(box => {
    box.addEventListener('scroll', () => mark(box), { passive: true })
    resized.observe(box)
  })
})
