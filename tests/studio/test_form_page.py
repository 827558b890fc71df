"""The form in a real browser: what is in view, what stands out, and what it remembers."""

import numpy as np
import pytest

from roadict.synthetic import planted

from .driving import PHONE, WIDE, until

CONTRASTS = """
    const numbers = colour => colour.match(/[\\d.]+/g).map(Number), style = getComputedStyle;
    const linear = v => v <= .03928 * 255 ? v / 255 / 12.92 : ((v / 255 + .055) / 1.055) ** 2.4;
    const light = ([r, g, b]) => .2126 * linear(r) + .7152 * linear(g) + .0722 * linear(b) + .05;
    const contrast = (a, b) => Math.max(light(a) / light(b), light(b) / light(a));
    const under = e => numbers(style(e).backgroundColor)[3] === 0 ? under(e.parentElement) : style(e).backgroundColor;
    return [...document.querySelectorAll('.gradio-container input:is([type=radio], [type=checkbox])')]
        .filter(i => i.offsetParent && style(i).appearance === 'none').map(i => {
            const label = i.closest('label'), around = numbers(under(label));
            const colours = [style(i).borderColor, style(label).color];
            return [label.innerText.trim(), ...colours.map(colour => contrast(numbers(colour), around))]; })
"""


@pytest.mark.parametrize("dark", [False, True])
def test_boxes_and_circles_to_tick_stand_out(page, tiny, dark):
    page.resize(WIDE, dark)
    for tab, count in (("Pictures", 6), ("Signals", 7)):
        page.open_tab(tab)
        found = until(lambda: len(found := page.browser.run(CONTRASTS)) == count and found, "the boxes")  # noqa: B023
        # Colours change slowly after a click: wait for the end.
        until(lambda: min(value for _, *values in page.browser.run(CONTRASTS) for value in values) >= 3, found)
    if not page.browser.find("#runs .rd-card input"):
        page.open_tab("Pictures")
        page.upload(tiny)
        page.choose("pictures-task", "Denoise")
        page.one("#pictures-run").click()
        until(lambda: page.browser.find("#runs .rd-card input"), "a card")
    scheme = "return getComputedStyle(document.querySelector('#runs .rd-card input')).colorScheme"
    assert page.browser.run(scheme) == ("dark" if dark else "normal")  # the browser draws it
    border = """const box = document.querySelector('#runs .rd-card input'), card = box.closest('.rd-card');
        if (arguments[0]) box.click();
        return [getComputedStyle(card).borderColor, getComputedStyle(card).boxShadow]"""
    plain, _ = page.browser.run(border, False)
    ticked, shadow = page.browser.run(border, True)
    assert ticked != plain
    assert ticked in shadow  # which is of the accent's colour


def test_the_buttons_of_a_job_stay_in_view(page, large):
    page.upload(large)
    page.choose("pictures-task", "Denoise")
    page.one("#pictures-run").click()
    until(lambda: page.browser.find("#pictures-keep"), "Stop and keep")
    hit = """const box = document.getElementById(arguments[0]).getBoundingClientRect();
        return document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2)?.closest('button')?.id"""
    for size in ((1400, 600, False), PHONE):
        page.resize(size, False)
        for share in (0, 0.5, 1):
            page.browser.run("scrollTo(0, arguments[0] * document.documentElement.scrollHeight)", share)
            for button in ("pictures-keep", "pictures-cancel"):
                until(lambda: page.browser.run(hit, button) == button, f"{button}, {size}, {share}")  # noqa: B023
        assert page.browser.width_of_content() <= size[0]
    edges = """return [document.querySelector('#pictures-panel').getBoundingClientRect().bottom,
        document.querySelector('#pictures-cancel').closest('.rd-actions').getBoundingClientRect().top]"""
    panel, buttons = page.browser.run(edges)
    assert panel <= buttons  # at the end of the page they hide nothing of it
    page.one("#pictures-cancel").click()
    page.wait_for("Cancelled")


def test_a_given_number_of_atoms_is_not_called_as_one_that_is_found(page):
    page.open_tab("Signals")
    shown = """const field = document.querySelector('#signals-components');
        return [field.innerText.split('\\n')[0].trim(), field.querySelector('input, textarea').value]"""
    given, found = ["Atoms", "twice the entries"], ["Numbers to try", "auto"]
    for expected in (given, found, given):
        until(lambda: page.browser.run(shown) == expected, expected)  # noqa: B023
        page.one("#signals-choose input").click()


def test_the_focus_of_the_keyboard_is_seen_on_every_field(page):
    from selenium.webdriver import ActionChains, Keys

    focused = """const at = document.activeElement, style = getComputedStyle(at);
        return [at.tagName, at.type, style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2]"""
    page.open_tab("Signals")
    until(lambda: page.browser.find("#signals-missing input"), "the form")
    seen = []
    for _ in range(14):
        ActionChains(page.driver).send_keys(Keys.TAB).perform()
        seen.append(page.browser.run(focused))
    fields = [(kind, ring) for tag, kind, ring in seen if tag in ("INPUT", "TEXTAREA")]
    assert {"radio", "checkbox", "textarea"} <= {kind for kind, _ in fields}
    assert all(ring for _, ring in fields), fields


def test_fields_without_effect_on_a_method_are_out_of_reach_and_the_heading_names_it(page):
    shown = """const at = name => document.querySelector(`#signals-${name} :is(input, textarea)`);
        return [document.querySelector('#signals-more button').innerText.split('\\n')[0].trim(),
            at('epsilon').value, ...['epsilon', 'choose', 'missing'].map(name => at(name).disabled),
            at('choose').checked, at('sparsity')?.value, Boolean(document.querySelector('#signals-fixed-file'))]"""
    page.open_tab("Signals")
    page.one("#signals-choose input").click()
    page.one("#signals-more button").click()
    until(lambda: page.browser.find("#signals-method input"), "the options")
    finding = ["More options", "auto", True, False, False, True, None, True]
    until(lambda: page.browser.run(shown) == finding, finding)
    two_stage = ["More options: K-SVD", "auto", True, True, True, False, "a tenth of the entries", False]
    given = ["More options", "auto", False, False, False, False, None, True]
    for method, expected in (("K-SVD", two_stage), ("ROAD", given)):
        page.one("#signals-method input").click()
        named = lambda: [option for option in page.browser.find("[role=option]") if option.text.strip("✓ ") == method]  # noqa: B023, E731
        until(named, method)[0].click()
        until(lambda: page.browser.run(shown) == expected, expected)  # noqa: B023


def settings(page, tab):
    """What the form of a tab shows: fields with text, boxes and circles that are ticked, and files."""
    return page.browser.run(
        """const shown = [...document.querySelectorAll('button[role=tab]')].find(tab => tab.ariaSelected === 'true');
        const left = document.querySelector(`#${arguments[0]}-run`).closest('.column');
        const fields = [...left.querySelectorAll('input[type=text], textarea')].filter(field => field.offsetParent);
        const ticked = [...left.querySelectorAll('input:checked')].filter(box => box.offsetParent);
        const files = [...left.querySelectorAll('.file-preview')].map(file => file.innerText.split(/\\s/).join(''));
        const labels = ticked.map(box => box.closest('label').innerText);
        return [shown.innerText, ...fields.map(field => field.value), ...labels,
            ...files.map(name => name.match(/^[^.]*\\.[a-z]{3}/)[0])].map(text => text.trim())""",
        tab,
    )


def test_a_past_run_fills_the_form_and_a_reload_keeps_it(page, tiny, tmp_path):
    made = planted(120, 8, 10, sparsity=2, random_state=0)
    np.save(tmp_path / "signals.npy", np.abs(made.codes) @ made.dictionary)
    page.open_tab("Signals")
    page.upload(tmp_path / "signals.npy", "signals")
    page.enter("signals-components", "10")
    page.choose("signals-signs", "Codes nonnegative")
    page.one("#signals-more button").click()
    page.enter("signals-seed", "3")
    page.one("#signals-run").click()
    page.wait_for("Done", "signals")
    learned = ["Signals", "10", "auto", "3", "Codes nonnegative", "signals.npy"]
    assert settings(page, "signals") == learned
    page.open_tab("Pictures")
    page.upload(tiny)
    page.choose("pictures-task", "Denoise")
    page.enter("pictures-noise", "7.5")
    page.one("#pictures-run").click()
    page.wait_for("Done")
    denoised = ["Pictures", "7.5", "Denoise", "tiny.png"]
    assert settings(page, "pictures") == denoised
    page.one("#pictures-file button[aria-label='Clear']").click()
    page.choose("pictures-task", "Upscale")
    page.open_tab("Signals")
    page.choose("signals-signs", "Any sign")
    page.enter("signals-components", "9")
    page.enter("signals-seed", "0")
    until(lambda: page.one("#signals-more button").text.split("\n")[0] == "More options", "nothing to be set there")
    page.one("#signals-more button").click()  # closed

    cards = until(lambda: page.browser.find("#runs .rd-card button"), "the cards")
    for tab, card, expected in (("pictures", cards[0], denoised), ("signals", cards[1], learned)):
        card.click()
        until(lambda: settings(page, tab) == expected, expected)  # noqa: B023
    assert page.one("#signals-more button").text.split("\n")[0] == "More options: seed 3"  # and open
    page.enter("signals-components", "12")
    kept = "return localStorage.getItem('roadict-signals')"
    before = page.browser.run(kept)
    until(lambda: page.browser.run(kept) != before, "the form to be saved")
    page.reload()
    until(
        lambda: page.browser.find("#signals-run") and settings(page, "signals") == ["Signals", "12", *learned[2:]], "it"
    )
    page.one("#signals-run").click()
    until(lambda: page.browser.find("#signals-command .cm-content"), "the command")
    assert "-k 12 --positive codes --seed 3" in page.one("#signals-command .cm-content").text.replace("\n", "")
    page.open_tab("Pictures")
    until(lambda: settings(page, "pictures") == denoised, denoised)
