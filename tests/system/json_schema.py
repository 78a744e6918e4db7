"""As much of JSON schema as the project's own schemas use; raises on a keyword it does not know."""

TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "null": lambda v: v is None,
}
NOTES = {"$schema", "title", "description"}


def problems(value, schema, at="$"):
    """Where value departs from schema, as sentences."""
    found = []
    for keyword, want in schema.items():
        if keyword in NOTES:
            continue
        if keyword == "type":
            kinds = want if isinstance(want, list) else [want]
            if not any(TYPES[k](value) for k in kinds):
                found.append(f"{at} is {value!r}, not {want}")
        elif keyword == "const":
            if value != want:
                found.append(f"{at} is {value!r}, not {want!r}")
        elif keyword == "enum":
            if value not in want:
                found.append(f"{at} is {value!r}, not one of {want}")
        elif keyword == "required":
            found += [f"{at} has no {k}" for k in want if isinstance(value, dict) and k not in value]
        elif keyword == "properties":
            for k, s in want.items():
                if isinstance(value, dict) and k in value:
                    found += problems(value[k], s, f"{at}.{k}")
        elif keyword == "items":
            if isinstance(value, list):
                for i, v in enumerate(value):
                    found += problems(v, want, f"{at}[{i}]")
        else:
            raise ValueError(f"keyword {keyword} at {at}")
    return found
