"""Lists as Compute Engine pages, sorts and groups them by zone."""

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence

from cloudwhale_providers.sandbox.compute.calls import Call
from cloudwhale_providers.sandbox.compute.filters import wanted
from cloudwhale_providers.sandbox.compute.refused import invalid
from cloudwhale_providers.sandbox.compute.wording import Words, link

PAGE = 500
"""Compute Engine API, list methods: maxResults from 0 to 500, 500 when it is left out."""
NEWEST = "creationTimestamp desc"


def listed(call: Call, kind: str, found: Iterable[Words]) -> Words:
    """Return a page of a list; raise Refused for a filter that cannot be read."""
    items, token = _page(call, sorted(found, key=lambda one: str(one["name"])))
    return {
        **_head(call, f"{kind}List"),
        **({"items": items} if items else {}),
        **({"nextPageToken": token} if token else {}),
    }


def aggregated(call: Call, kind: str, plural: str, found: Mapping[str, Sequence[Words]]) -> Words:
    """Return a page of a list by scope; every scope is named, if only to say that it is empty."""
    flat = [(scope, one) for scope in sorted(found) for one in found[scope]]
    home = {id(one): scope for scope, one in flat}
    page, token = _page(call, [one for _, one in flat])
    items: dict[str, Words] = {}
    for one in page:
        items.setdefault(home[id(one)], {plural: []})[plural].append(one)
    if call.query.get("includeAllScopes", "") != "false" or not page:
        for scope in found:
            items.setdefault(scope, _nothing(scope))
    return {
        **_head(call, f"{kind}AggregatedList"),
        "items": items,
        **({"nextPageToken": token} if token else {}),
    }


def silence(told: Words, zones: Iterable[str]) -> None:
    """Let a list by scope say of some zones that they have not answered."""
    for zone in zones:
        scope = f"zones/{zone}"
        if scope in told["items"]:
            says = f"Scope '{scope}' is unreachable."
            data = [{"key": "scope", "value": scope}]
            told["items"][scope] = {
                "warning": {"code": "UNREACHABLE", "message": says, "data": data}
            }
            told.setdefault("unreachables", []).append(scope)


def _head(call: Call, kind: str) -> Words:
    where = call.method.path.format_map(call.path)
    return {"kind": f"compute#{kind}", "id": where, "selfLink": link(where)}


def _nothing(scope: str) -> Words:
    says = f"There are no results for scope '{scope}' on this page."
    data = [{"key": "scope", "value": scope}]
    return {"warning": {"code": "NO_RESULTS_ON_PAGE", "message": says, "data": data}}


def _page(call: Call, found: Sequence[Words]) -> tuple[Sequence[Words], str]:
    fits = wanted(call.query.get("filter", ""))
    kept = _sorted(call, [one for one in found if fits(one)])
    most = int(call.query.get("maxResults") or PAGE)
    if not 0 <= most <= PAGE:
        raise invalid("maxResults", most, f"Must be between 0 and {PAGE}.")
    first = _first(call.query.get("pageToken", ""))
    page = kept[first : first + (most or PAGE)]
    after = first + len(page)
    return page, _token(after) if after < len(kept) else ""


def _sorted(call: Call, found: list[Words]) -> list[Words]:
    order = call.query.get("orderBy", "")
    if order == NEWEST:
        return sorted(found, key=lambda one: str(one["creationTimestamp"]), reverse=True)
    if order in ("", "name"):
        return found
    raise invalid("orderBy", order, f"Only name and {NEWEST} are supported.")


def _token(first: int) -> str:
    return base64.urlsafe_b64encode(f"from {first}".encode()).decode()


def _first(token: str) -> int:
    if not token:
        return 0
    try:
        words = base64.urlsafe_b64decode(token).decode()
    except (binascii.Error, UnicodeDecodeError):
        words = ""
    number = words.removeprefix("from ")
    if not number.isdecimal():
        raise invalid("pageToken", token, "The page token is invalid.")
    return int(number)
