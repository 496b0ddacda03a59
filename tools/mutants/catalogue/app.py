"""Mistakes about who the curators' page is shown to, and what it reaches."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

_GUARD = "src/dualquery/cli/app/guard.py"
_SERVER = "src/dualquery/cli/app/server.py"
_FOLDER = "src/dualquery/cli/app/folder.py"
_FORMS = "src/dualquery/cli/app/forms.py"
_TESTS = "tests/cli/test_app.py::"

MUTANTS = (
    Mutant(
        "app-any-host",
        _GUARD,
        '        if headers.get_all("Host") != [self.host]:',
        '        if not headers.get_all("Host"):',
        (_TESTS + "test_another_name_for_this_address_is_not_answered",),
        "A page whose name is made to lead to 127.0.0.1 would be of one origin with the app.",
    ),
    Mutant(
        "app-any-origin",
        _GUARD,
        'any(origin != f"http://{self.host}" for origin',
        "any(not origin for origin",
        (_TESTS + "test_another_page_cannot_ask",),
        "Any page could send requests.",
    ),
    Mutant(
        "app-no-origin",
        _GUARD,
        '        if not headers.get_all("Origin"):',
        "        if False:",
        (_TESTS + "test_another_page_cannot_ask",),
        "A request that hides where it comes from would be taken for one of the page.",
    ),
    Mutant(
        "app-any-site",
        _GUARD,
        'not in ("none", "same-origin")',
        'not in ("none", "same-origin", "same-site", "cross-site")',
        (_TESTS + "test_another_page_cannot_ask",),
        "Another server on this machine could show the page in its own.",
    ),
    Mutant(
        "app-forms-of-other-pages",
        _GUARD,
        '        if headers.get_content_type() != "application/json":',
        "        if False:",
        (_TESTS + "test_a_form_of_another_page_is_no_question",),
        "A browser sends plain forms for any page without asking first.",
    ),
    Mutant(
        "app-any-token",
        _SERVER,
        "        elif not guard.knows(self.headers):",
        "        elif not self.headers:",
        (_TESTS + "test_nothing_is_done_without_the_token",),
        "Every user of the machine could read the table.",
    ),
    Mutant(
        "app-a-link-that-stays",
        _GUARD,
        "            self._key = secrets.token_urlsafe(32)\n            return self._token",
        "            return self._token",
        (_TESTS + "test_a_link_opens_the_page_once",),
        "Whoever finds the link in a history or on a screen would get in.",
    ),
    Mutant(
        "app-a-ticket-that-stays",
        _GUARD,
        'self._shown.pop(address.removeprefix("/shown/"), None)',
        'self._shown.get(address.removeprefix("/shown/"))',
        (_TESTS + "test_what_a_frame_shows_is_there_once_and_apart",),
        "The address of a private page would work for whoever finds it.",
    ),
    Mutant(
        "app-a-frame-that-reaches-the-app",
        _SERVER,
        '"sandbox allow-scripts allow-downloads; ',
        '"sandbox allow-scripts allow-downloads allow-same-origin; ',
        (_TESTS + "test_what_a_frame_shows_is_there_once_and_apart",),
        "The page of a stranger's release could read the token.",
    ),
    Mutant(
        "app-files-outside",
        _FOLDER,
        "        if not found.is_relative_to(self.path) or found == self.path:",
        "        if found == self.path:",
        (
            _TESTS + "test_nothing_outside_the_folder_is_reached",
            _TESTS + "test_a_link_in_the_place_of_a_page_is_not_followed",
        ),
        "The page could read and write every file of its user.",
    ),
    Mutant(
        "app-links-not-followed",
        _FOLDER,
        "        found = (self.path / name.strip()).resolve()",
        "        found = (self.path / name.strip()).absolute()",
        (_TESTS + "test_nothing_outside_the_folder_is_reached",),
        "A link in the folder would lead out of it.",
    ),
    Mutant(
        "app-stored-by-the-browser",
        _SERVER,
        '"Cache-Control": "no-store"',
        '"Cache-Control": "private"',
        (_TESTS + "test_nothing_is_stored_and_nothing_else_runs",),
        "What was read off the table would stay on the disk of the browser.",
    ),
    Mutant(
        "app-signed-with-what-was-seen",
        _FORMS,
        "    schema.save(file, header if schema.draft else ())",
        "    schema.save(file, header)",
        (_TESTS + "test_what_a_draft_says_goes_with_the_draft",),
        "A signed schema would still quote the private table in its comments.",
    ),
)
