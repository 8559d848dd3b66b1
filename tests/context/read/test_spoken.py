"""A message is read without its speaker, and without what a player does."""

import pytest

from gateway.context.read.spoken import spoken


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[Ana Kovač 09:14] @Pip when is it", "when is it"),
        ("[Sun 12 Jan, 23:41]\nwhen is it", "when is it"),
        ("[Ana · dim. 4 mai, 20:12]\nyes\n[Ben · dim. 4 mai, 20:15]\nwho pays", "yes\nwho pays"),
        ("[server]\nport = 80", "[server]\nport = 80"),
        ("--- Thu 4 July ---\n[Tobi 09:20] who pays", "who pays"),
        ("Ana (@ana): when is it", "when is it"),
        ("Ana (12/03, 18:40): when is it", "when is it"),
        ("**Ana**: when is it", "when is it"),
        ("**Ana:** when is it", "when is it"),
        ("<Ana> when is it", "when is it"),
        ("09:14 Ana: when is it", "when is it"),
        ("[Ana] yes\n[Ben] and who pays", "yes\nand who pays"),
        ('*shrugs* "Where is it?" *looks around*', '"Where is it?"'),
        ("when is it", "when is it"),
        ("it was *really* late", "it was *really* late"),
        ("which one was *cheaper*", "which one was *cheaper*"),
        ('*counts* "So?" *smirks* *waits*', '"So?"'),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("* one\n* two", "* one\n* two"),
        ("**bold** text", "**bold** text"),
        ("mail ana@example.org", "mail ana@example.org"),
        ("*waits*", "*waits*"),
        ("[x](y) and [z]", "[x](y) and [z]"),
        ("", ""),
    ],
)
def test_only_what_is_said_is_left(text: str, said: str) -> None:
    assert spoken(text) == said
