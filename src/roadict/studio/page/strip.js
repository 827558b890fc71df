// Cards: a click shows a run, ticks on two compare them.
const ticked = () => [...element.querySelectorAll('input:checked')]
let chosen = [] // runs, the latest last
// The page changes cards in place when a run is added: ticks stay with their runs.
const tick = () => element.querySelectorAll('input').forEach(box => { box.checked = chosen.includes(box.value) })
new MutationObserver(tick).observe(element, { childList: true, subtree: true, attributeFilter: ['value'] })
element.addEventListener('click', event => {
  const button = event.target.closest('button')
  if (!button) return
  if (button.dataset.run) trigger('show', { run: button.dataset.run })
  else if (confirm('Delete all past runs?')) trigger('clear_all')
})
element.addEventListener('change', event => {
  const runs = ticked().map(box => box.value)
  chosen = chosen.filter(run => run !== event.target.value && runs.includes(run))
  if (event.target.checked) chosen = [...chosen.slice(-1), event.target.value]
  tick()
  const two = ticked().map(box => box.value)
  if (two.length === 2 || document.querySelector('#versus section, #versus .rd-panel')) trigger('compare', { runs: two })
})
