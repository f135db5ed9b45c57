"""What the pictures of all profiles begin with."""

from __future__ import annotations

from html import escape


def picture_head(title: str, width: int, height: int, text_style: str = 'font-size="11"') -> list[str]:
    """The first lines of an SVG element of so many pixels, on white, that a screen reader names by its title.

    `text_style`: attributes of the text in it.
    """
    name = escape(title)
    return [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img" '
            f'aria-label="{name}" font-family="monospace" {text_style}>'
        ),
        f"<title>{name}</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
