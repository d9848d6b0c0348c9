"""Names static files by their content, imports between JavaScript modules included."""

from whitenoise.storage import CompressedManifestStaticFilesStorage


class StaticFilesStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # WhiteNoise is untyped
    """Hashed and compressed. Every `import` in `static/js` ends with a semicolon: others are not rewritten."""

    support_js_module_import_aggregation = True
