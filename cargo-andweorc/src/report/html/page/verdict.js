// Verdicts, and why they are so.

/** A verdict in a word. */
const verdictWord = (target) => (view().judged ? standing(target).verdict : "not judged");

/** Why a target has its verdict. */
function why(target) {
  const { verdict, more_seconds } = standing(target);
  const effect = effectsOf(target).at(-1);
  const what = measure() + " of " + data.points[state.point].name;
  if (!effect) return "The point was not hit in the experiments on it.";
  if (!view().judged) return "The throughput is not judged under this load: " + (data.warning ?? "it is not known to wait for the program.");
  const at = "At " + percent(effect.speedup) + " faster, the largest speedup tested, the 95 % interval " + interval(effect.low, effect.high);
  const more = more_seconds ? " About " + roughly(Math.max(more_seconds, 1)) + " more of experiments on it would tell." : "";
  const [up, down] = better() > 0 ? ["raises", "lowers"] : ["lowers", "raises"];
  if (verdict === "matters") return "Faster, it " + up + " the " + what + ". " + at + " is away from zero by more than one point.";
  if (verdict === "hurts") return "Faster, it " + down + " the " + what + ", by contention most often. " + at + " is away from zero by more than one point.";
  if (verdict === "nothing") return "Faster, it changes nothing. " + at + " lies within one point of zero.";
  if (effect.n < 2 || effect.low === null) return "Not known yet: one experiment at the largest speedup makes no verdict." + more;
  if (effect.low > 0 || effect.high < 0) {
    return "Not known yet. " + at + " leaves out zero, but not what counts as nothing, or of so many targets some stand out as much by chance." + more;
  }
  return "Not known yet. " + at + " has zero in it, and reaches further than one point from it." + more;
}

/** A verdict as a button that says why. */
function chip(target) {
  return el(
    "button",
    { type: "button", class: "chip " + (view().judged ? standing(target).verdict : "inconclusive"), "aria-haspopup": "dialog", onclick: (event) => explain(target, event.currentTarget) },
    verdictWord(target),
  );
}

/** Shows why, below the button. Esc, or a touch elsewhere, closes it. */
function explain(target, button) {
  const note = document.getElementById("why");
  note.replaceChildren(el("b", {}, target.name + ": " + verdictWord(target)), el("p", {}, why(target)));
  const at = button.getBoundingClientRect();
  note.showPopover({ source: button });
  const width = note.offsetWidth;
  const above = at.bottom + note.offsetHeight + 12 > innerHeight;
  note.style.left = Math.max(8, Math.min(at.right - width, innerWidth - width - 8)) + "px";
  note.style.top = Math.max(8, above ? at.top - note.offsetHeight - 6 : at.bottom + 6) + "px";
  note.focus();
}
