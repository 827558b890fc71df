"""docs/paper-to-code.md names every label of the paper's source except those of sections."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAPER = ROOT.parent / "shared" / "paper" / "road-paper.tex"
LABELS = """
    eq:dict-learning eq:DL-sparsity-k eq:sparse-coding eq:DL-l1 eq:def-Z eq:rank-one-set eq:l-21-norm
    eq:ROAD-formulation eq:ROAD-Lasso-formulation prop:convex-not-work eq:ADMM-general eq:ADMM-step1 eq:ADMM-step2
    eq:pri-feasible-general eq:dual-feasible1-general eq:dual-feasible2-general eq:indicator-function
    eq:ROAD-Noisy-EasyForm eq:ADMM-inexact-EasyForm eq:Augmented-Lagrangian eq:ADMM-inexact-StandardForm
    eq:augmented-Lagrangian-StandardForm eq:Augmented-Lagrangian-DifRho eq:ADMM-X1-update eq:ADMM-X2-update
    eq:ADMM-X3-update eq:ADMM-Z1-update eq:ADMM-Z2-update eq:ADMM-Z3-update eq:ADMM-Lambda1k-Update
    eq:ADMM-Lambda2k-Update eq:ADMM-Lambda3-Update eq:X1-solution eq:X2-solution eq:Z1-solver eq:Z2-solver
    eq:Z3-solver eq:ADMM-exact-EasyForm eq:Augmented-Lagrangian-exact eq:ADMM-P-update eq:ADMM-Q-update
    eq:ADMM-Z-update eq:indicator-function-noise eq:ADMM-noisy-form eq:ADMM-W-update eq:W-solution
    thm:convergence-ROAD eq:stop-conditions eq:subdif-Lambdas eq:subdif-Pk eq:subdif-Qk eq:subdif-Zk
    prop:subprob-Lipschitz lem:Lagranian-descends eq:lower-bound-difLagrangian eq:subdifferential-L21
    def:prox-regularity prop:prox-regular-inequation prop:prox-regularity-rank-one-set
    prop:prox-regularity-indicator-function eq:1stOdrOpt-X1-update eq:1stOdrOpt-X2-update eq:1stOdrOpt-X3-update
    eq:1stOdrOpt-Z1-update eq:1stOdrOpt-Z2-update eq:1stOdrOpt-Z3-update eq:LagDif-X1-Update eq:LagDif-X2-Update
    eq:LagDif-X3-Update eq:LagDif-Z-Update eq:LagDif-Lambda-Update lem:Lagranian-converges
    eq:explicit-expression-pratial-rho eq:limit-dual-residual eq:limit-primal-residual eq:DRE
    fig:compare-iADMM-eADMM fig:1 fig:2 fig:3 tab:1 tab:2 fig:4 fig:5
"""


def test_every_label_of_the_paper_leads_somewhere():
    text = (ROOT / "docs" / "paper-to-code.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:eq|thm|lem|prop|def|fig|tab):[^`]+)`", text))
    assert set(LABELS.split()) - named == set()
    assert named - set(LABELS.split()) == set()  # misspelt


def test_these_are_the_labels_of_the_paper():
    if not PAPER.is_file():
        pytest.skip(f"needs the source of the paper, which the repository does not hold: {PAPER}")
    source = re.sub(r"(?<!\\)%.*", "", PAPER.read_text(encoding="utf-8"))
    found = re.findall(r"\\label\{([^}]*)\}", source)
    assert {label for label in found if not re.match("(?:sub)*sec:", label)} == set(LABELS.split())
