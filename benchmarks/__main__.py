"""Command line: ``python -m benchmarks --help``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="sarrus beside its peers, in one run.")
    parser.add_argument("--quick", action="store_true", help="0.3 s a row instead of 3; fewer states for --accuracy")
    parser.add_argument("--only", default="", metavar="rnea,panda,cpp", help="algorithms, models and groups of rows")
    parser.add_argument("--accuracy", action="store_true", help="errors of closed chains instead of times")
    parser.add_argument("--simulation", action="store_true", help="simulations: time a step, drift of loops and energy")
    parser.add_argument("--rollout", action="store_true", help="many runs beside mujoco.rollout, one thread each")
    parser.add_argument("--control", action="store_true", help="a step of each control law, and one written by hand")
    parser.add_argument(
        "--position", action="store_true", help="loops closed and frames led, one by one and many at once"
    )
    parser.add_argument(
        "--variants", action="store_true", help="many mechanisms that differ in numbers, at once and one by one"
    )
    parser.add_argument("--derivatives", action="store_true", help="derivatives by a state, beside Pinocchio's")
    parser.add_argument(
        "--graphs", action="store_true", help="rings, strips and nets, beside SciPy's sparse factorisation"
    )
    parser.add_argument(
        "--engines", action="store_true", help="closed chains, with and without contact, in all engines"
    )
    parser.add_argument("--near-singular", type=Path, metavar="FILE", help="plot errors near a singular position")
    parser.add_argument("--import", dest="imports", action="store_true", help="what `import sarrus` costs")
    parser.add_argument("--checks", action="store_true", help="what the look whether states are off the loops costs")
    parser.add_argument("--build-peer", action="store_true", help="compile Pinocchio's C++ templates if need be")
    parser.add_argument("--peer-flags", default="", metavar="FLAGS", help="further compiler flags for Pinocchio")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--plot", type=Path, metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE", nargs="?", help="write the table there as well")
    options = parser.parse_args()

    if options.near_singular:
        from . import near_singular

        near_singular.plot(options.near_singular)
        return 0

    if options.simulation or options.position or options.rollout or options.control:
        from . import control, position, rollout, simulation

        table = (
            simulation.markdown(
                list((rollout if options.rollout else control if options.control else simulation).rows(_tell))
            )
            if not options.position
            else position.markdown(position.rows(_tell, 0.3 if options.quick else 2.0))
        )
        print(table)
        if options.markdown:
            options.markdown.write_text(table)
        return 0

    if options.engines:
        from . import engines

        found, silent = engines.rows(_tell, options.only)
        table = engines.markdown(found, silent) + "\n" + engines.steps(_tell, 0.3 if options.quick else 20.0)
        print(table)
        if options.markdown:
            options.markdown.write_text(table)
        if options.plot:
            engines.plot(found, options.plot)
        return 0

    if options.graphs:
        from . import graphs

        table = graphs.markdown(graphs.rows(_tell, 0.3 if options.quick else 2.0))
        print(table)
        if options.markdown:
            options.markdown.write_text(table)
        if options.plot:
            graphs.plot(options.plot)
        return 0

    if options.imports or options.checks:
        from . import checks, imports

        table = imports.markdown(imports.rows()) if options.imports else checks.markdown(checks.rows())
        print(table)
        if options.markdown:
            options.markdown.write_text(table)
        return 0

    try:
        import pinocchio  # noqa: F401
    except ImportError as error:
        print(f"{error}: pip install '.[bench]'", file=sys.stderr)
        return 2

    from . import accuracy, derivatives, floating_rows, loop_peers, loop_rows, peers, report, rows, variants
    from .models import all_models
    from .subjects import DisagreementError

    flags = tuple(options.peer_flags.split())

    def peer(source: Path) -> Path | None:
        try:
            return peers.build_pinocchio_peer(flags, build=options.build_peer, source=source)
        except peers.PeerNotBuiltError as error:
            if options.build_peer:  # what was asked for cannot be had
                parser.exit(2, f"{error}\n")
            print(f"{error}; the rows inside C++ have no peer", file=sys.stderr)
            return None

    if options.derivatives or options.variants:
        seconds = 0.3 if options.quick else 2.0
        if options.derivatives:
            table = derivatives.markdown(derivatives.rows(_tell, seconds, peer(peers.SOURCE)))
        else:
            table = variants.markdown(variants.rows(_tell, seconds))
        print(table)
        if options.markdown:
            options.markdown.write_text(table)
        return 0

    facts = report.facts(flags)
    if options.accuracy:
        found = accuracy.run(peer(loop_peers.SOURCE), _tell, options.quick)
        table = accuracy.markdown(found, facts)
        print(table)
        if options.markdown:
            options.markdown.write_text(table)
        if options.json:
            options.json.write_text(json.dumps(accuracy.as_numbers(found, facts), indent=1) + "\n")
        return 0

    models = all_models()
    titles = {model.name: model.title for model in models} | loop_rows.titles() | floating_rows.TITLES
    seconds = 0.3 if options.quick else 3.0
    try:
        selection = rows.Selection.of({word for word in options.only.split(",") if word}, titles)
        trees, differences = rows.run(models, peer(peers.SOURCE), selection, seconds, _tell)
        loops, loop_errors = loop_rows.run(peer(loop_peers.SOURCE), selection, seconds, _tell)
        floating = floating_rows.run(selection, seconds, _tell)
    except (DisagreementError, ValueError) as error:
        print(f"no numbers: {error}", file=sys.stderr)
        return 1

    results, errors = [*trees, *loops, *floating], {**differences, **loop_errors}
    table = report.markdown(results, facts, differences, titles)
    print(table)
    if options.markdown:
        options.markdown.write_text(table)
    if options.json:
        report.write_json(options.json, results, facts, errors)
    if options.plot:
        report.plot(options.plot, results, facts, titles)
    return 0


def _tell(what: str) -> None:
    print(what, file=sys.stderr)


if __name__ == "__main__":
    raise SystemExit(main())
