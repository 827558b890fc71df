// Cards: a click shows a run, ticks on two compare them.
const ticked = () => [...element.querySelectorAll('input:checked')]
let latest = null
element.addEventListener('click', event => {
  const button = event.target.closest('button')
  if (!button) return
  if (button.dataset.run) trigger('show', { run: button.dataset.run })
  else if (confirm('Delete all past runs? Their files are removed from this machine.')) trigger('clear_all')
})
element.addEventListener('change', event => {
  const boxes = ticked()
  if (boxes.length > 2) boxes.find(box => box !== event.target && box.value !== latest).checked = false
  latest = event.target.value
  const two = ticked().map(box => box.value)
  if (two.length === 2 || document.querySelector('#versus .rd-versus')) trigger('compare', { runs: two })
})
