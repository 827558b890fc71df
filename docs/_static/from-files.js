// Without a server the search cannot read pages for their summaries: it shows titles, and the console no errors.
if (location.protocol === 'file:') DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false
