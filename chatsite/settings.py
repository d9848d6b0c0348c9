"""Every setting, read once from the environment (or `.env`). Nothing else in the project reads the environment."""

import hmac
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured
from django.utils.csp import CSP

from chatsite.currencies import currency
from chatsite.logs import configure_logging
from chatsite.mailers import mailer
from chatsite.oidc import oidc_provider, origin_of
from foundation.pool import check_connection

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()
environ.Env.read_env(BASE_DIR / ".env")

DEBUG = env.bool("DEBUG", default=True)
INSECURE_SECRET_KEY = "insecure-key-for-development-only-never-for-production"  # noqa: S105
SECRET_KEY = env.str("SECRET_KEY", default=INSECURE_SECRET_KEY if DEBUG else "")
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]", "testserver"] if DEBUG else [])
HOST = env.str("HOST", default="127.0.0.1")
try:
    PORT = env.int("PORT", default=8000)
except ValueError:
    PORT = 0
"""Where `run_all` serves the pages."""
if not 0 < PORT < 65536:
    raise ImproperlyConfigured("PORT must be a whole number from 1 to 65535.")
SITE_URL = env.str("SITE_URL", default=f"http://localhost:{PORT}").rstrip("/")
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[SITE_URL])
DATA_DIR = Path(env.str("DATA_DIR", default=str(BASE_DIR / "var"))).resolve()
EXTERNAL_ADDRESSES = {name: env.str(name, default="") for name in ("DATABASE_URL", "REDIS_URL", "MODEL_FLEET")}
"""What `run_all` uses instead of starting its own; empty where it starts it."""
# Where a stack runs from this data directory, management commands use its stores without being told.
environ.Env.read_env(DATA_DIR / "stack.env")
LITE = env.bool("LITE", default=False)
"""Whether `run_all` starts the small model only."""

if not DEBUG:
    if not SECRET_KEY or SECRET_KEY == INSECURE_SECRET_KEY or len(SECRET_KEY) < 50:
        raise ImproperlyConfigured(
            "With DEBUG=false, set SECRET_KEY to a private random string of 50 characters or more."
        )
    if not ALLOWED_HOSTS:
        raise ImproperlyConfigured(
            "With DEBUG=false, set ALLOWED_HOSTS to the host names of this site, comma-separated."
        )
    if "*" in ALLOWED_HOSTS:
        raise ImproperlyConfigured("With DEBUG=false, ALLOWED_HOSTS must name hosts; '*' would accept any Host header.")

INSTALLED_APPS = [
    "chatsite.admin_apps.ChatAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "allauth",
    "allauth.account",
    "allauth.headless",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.usersessions",
    "channels",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "chatsite",
    "conversations",
    "accounts",
    "inference",
]

MIDDLEWARE = [
    "chatsite.middleware.request_id",
    "chatsite.api_errors.api_errors",
    "django.middleware.security.SecurityMiddleware",
    "chatsite.static_middleware.StaticFilesMiddleware",
    "chatsite.app_login.strict_app_login",
    "chatsite.sign_in_limits.sign_in_limits",
    "chatsite.prompt_middleware.ContentSecurityPolicyMiddleware",
    "chatsite.prompt_middleware.SessionMiddleware",
    "chatsite.prompt_middleware.LocaleMiddleware",
    "chatsite.prompt_middleware.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "chatsite.prompt_middleware.AuthenticationMiddleware",
    "chatsite.prompt_middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "chatsite.page_errors.PageErrors",
    "chatsite.api_errors.ApiExceptions",
]
PROGRAM_MIDDLEWARE = [
    "chatsite.middleware.request_id",
    "chatsite.api_errors.api_errors",
    "chatsite.prompt_middleware.SecurityMiddleware",
    "chatsite.prompt_middleware.ContentSecurityPolicyMiddleware",
    "chatsite.prompt_middleware.CommonMiddleware",
    "chatsite.prompt_middleware.XFrameOptionsMiddleware",
    "chatsite.api_errors.ApiExceptions",
]
"""For the API's requests with a bearer credential (`chatsite/programs.py`); each step is taken on the event loop."""

ROOT_URLCONF = "chatsite.urls"
ASGI_APPLICATION = "chatsite.asgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.csp",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# Stores ---------------------------------------------------------------------------------------------------------------

DATABASE_POOL_SIZE = env.int("DATABASE_POOL_SIZE", default=0)
"""Connections kept per process; 0 means no pool. Only the web process sets it (`run_all` and the Procfile do)."""
DATABASES = {"default": env.db_url("DATABASE_URL", default="postgresql://chatsite@localhost:5432/chatsite")}
DATABASES["default"]["ENGINE"] = "foundation.postgresql"
DATABASES["default"].setdefault("OPTIONS", {})
DATABASES["default"]["OPTIONS"].setdefault("connect_timeout", 2)
DATABASES["default"]["TEST"] = {"NAME": env.str("TEST_DATABASE_NAME", default="chatsite_test")}
DEFAULT_PASSWORDS = {"postgres", "password", "chatsite", "changeme", "change-me", "secret", "admin"}
if not DEBUG and DATABASES["default"].get("PASSWORD", "") in DEFAULT_PASSWORDS:
    raise ImproperlyConfigured(
        "With DEBUG=false, DATABASE_URL must not carry a well-known default password; choose one."
    )
if DATABASE_POOL_SIZE:
    DATABASES["default"]["OPTIONS"]["pool"] = {
        "min_size": 1,
        "max_size": DATABASE_POOL_SIZE,
        "timeout": 1.5,
        # After an outage the pool would wait, ever longer, before it tries again; given up, the next caller does.
        "reconnect_timeout": 0.5,
        "check": check_connection,
    }
else:
    DATABASES["default"]["CONN_MAX_AGE"] = 60
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.str("REDIS_URL", default="redis://localhost:6379/0")
REDIS_KEY_PREFIX = env.str("REDIS_KEY_PREFIX", default="chat")
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": f"{REDIS_KEY_PREFIX}:cache",
    },
}
CHANNELS_PREFIX = f"{REDIS_KEY_PREFIX}:channels"
CHANNEL_LAYERS = {
    "default": {
        # The default RedisChannelLayer lost half the messages at 100 streams: its capacity is per process.
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL], "prefix": CHANNELS_PREFIX},
    },
}

# People ---------------------------------------------------------------------------------------------------------------

AUTH_USER_MODEL = "accounts.User"
DEFAULT_TIER = env.str("DEFAULT_TIER", default="free")
"""The tier of new accounts."""
AUTHENTICATION_BACKENDS = ["accounts.sign_in.EmailBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_REDIRECT_URL = "/"
LOGIN_URL = "account_login"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = env.str("EMAIL_VERIFICATION", default="optional" if DEBUG else "mandatory")
ACCOUNT_ADAPTER = "accounts.sign_in.AccountAdapter"
ACCOUNT_FORMS = {"signup": "accounts.forms.SignUpForm"}
ACCOUNT_CHANGE_EMAIL = True
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_REAUTHENTICATION_METHODS = {"password", "mfa", "code"}
# Such a code is mailed only to whoever signs in elsewhere, and has neither of the others (`AccountAdapter`).
ACCOUNT_LOGIN_BY_CODE_TIMEOUT = 600
ACCOUNT_LOGOUT_ON_GET = False
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_PREVENT_ENUMERATION = True
ACCOUNT_RATE_LIMITS = {
    "login": "30/m/ip",
    "login_failed": "10/m/ip,5/300s/key",
    "signup": "20/m/ip",
    "reset_password": "20/m/ip,5/m/key",
    "reset_password_from_key": "20/m/ip",
    "reauthenticate": "10/m/user",
    "change_password": "5/m/user",
    "manage_email": "10/m/user",
}
"""How often from one network address (`ip`), for one email address (`key`), by one person (`user`)."""
SIGN_UP = env.str("SIGN_UP", default="open")
SIGN_UP_DOMAINS = env.list("SIGN_UP_DOMAINS", default=[])
if SIGN_UP not in ("open", "invite", "domain", "closed"):
    raise ImproperlyConfigured("SIGN_UP must be open, invite, domain or closed.")
if SIGN_UP == "domain" and not SIGN_UP_DOMAINS:
    raise ImproperlyConfigured("With SIGN_UP=domain, set SIGN_UP_DOMAINS to the domains of addresses that may sign up.")
INVITATION_DAYS = env.int("INVITATION_DAYS", default=7)
MOST_API_KEYS = env.int("MOST_API_KEYS", default=50)
"""How many good keys one account may have."""
STAFF_NEEDS_SECOND_FACTOR = env.bool("STAFF_NEEDS_SECOND_FACTOR", default=not DEBUG)
MFA_ADAPTER = "accounts.second_factor.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_TOLERANCE = 1
# Browsers have passkeys on http://localhost, which is where a site is tried out.
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = DEBUG
MFA_ALLOW_UNVERIFIED_EMAIL = ACCOUNT_EMAIL_VERIFICATION != "mandatory"
SOCIALACCOUNT_ADAPTER = "accounts.social_sign_in.SocialAccountAdapter"
SOCIALACCOUNT_EMAIL_AUTHENTICATION = True
SOCIALACCOUNT_EMAIL_AUTHENTICATION_AUTO_CONNECT = True
SOCIALACCOUNT_STORE_TOKENS = False
OIDC_ISSUER = env.str("OIDC_ISSUER", default="")
OIDC_SIGN_IN_ORIGIN = env.str("OIDC_SIGN_IN_ORIGIN", default=origin_of(OIDC_ISSUER))
"""Where the provider's sign-in page is, if not on the issuer's host."""
SOCIALACCOUNT_PROVIDERS = oidc_provider(
    issuer=OIDC_ISSUER,
    client_id=env.str("OIDC_CLIENT_ID", default=""),
    client_secret=env.str("OIDC_CLIENT_SECRET", default=""),
    name=env.str("OIDC_NAME", default="your organisation"),
    allows_http=DEBUG,
)
ERASURE_HOURS = env.int("ERASURE_HOURS", default=24)
"""Within how many hours all of an account is erased, as people are told; usually it takes seconds."""
RECEIPT_KEEP_DAYS = 365
"""How long the receipt of an erasure can be read."""
HEADLESS_CLIENTS = ("app",)
HEADLESS_TOKEN_STRATEGY = "accounts.access_tokens.AccessTokenStrategy"  # noqa: S105
HEADLESS_JWT_ALGORITHM = "HS256"
# A key of its own: what signs access tokens must not be what signs anything else.
HEADLESS_JWT_PRIVATE_KEY = hmac.digest(SECRET_KEY.encode(), b"accounts.access-tokens.v1", "sha256").hex()
HEADLESS_JWT_ROTATE_REFRESH_TOKEN = True
# Without it a JWT outlives its logout.
HEADLESS_JWT_STATEFUL_VALIDATION_ENABLED = True
HEADLESS_JWT_ACCESS_TOKEN_EXPIRES_IN = 300

MAILERS = {"default": mailer(env.email_url("EMAIL_URL", default="consolemail://"))}
DEFAULT_FROM_EMAIL = env.str("DEFAULT_FROM_EMAIL", default="Chat <chat@localhost>")

# Money ----------------------------------------------------------------------------------------------------------------

CURRENCY = currency(env.str("CURRENCY", default="EUR"))
"""The currency of every price, as ISO 4217 spells it; it has cents."""
BILLING_GRACE_DAYS = env.int("BILLING_GRACE_DAYS", default=14)
"""How long a plan whose payment failed goes on; then the account is on the default tier."""
INVOICE_DUE_DAYS = env.int("INVOICE_DUE_DAYS", default=14)
STRIPE_SECRET_KEY = env.str("STRIPE_SECRET_KEY", default="")
STRIPE_WEBHOOK_SECRET = env.str("STRIPE_WEBHOOK_SECRET", default="")
"""With both, plans can be paid by Stripe; without, the site bills by invoice only."""
STRIPE_API_BASE = env.str("STRIPE_API_BASE", default="")
"""Where Stripe's API is, if not at its own address."""
if bool(STRIPE_SECRET_KEY) != bool(STRIPE_WEBHOOK_SECRET):
    raise ImproperlyConfigured("Set STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET together, or neither.")
INVOICE_ISSUER = env.str("INVOICE_ISSUER", default="", multiline=True)
"""Who issues invoices: name, address, tax number, bank; lines are separated by \\n."""

# The API --------------------------------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "accounts.authentication.APIKeyAuthentication",
        "accounts.authentication.AccessTokenAuthentication",
        "accounts.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["accounts.authentication.HasScope"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["chatsite.parsers.StrictJSONParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "foundation.negotiation.AlwaysJSON",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "chatsite.errors.exception_handler",
    "NON_FIELD_ERRORS_KEY": "body",
    "UNAUTHENTICATED_USER": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Chat API",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "MessageStatus": "conversations.models.Message.Status",
        "TransferStatus": "conversations.models.transfer.TransferStatus",
        "InvoiceStatus": "accounts.models.Invoice.Status",
        "ErasureStatus": "accounts.api.account.ERASURE_STATUSES",
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "chatsite.schema.complete",
    ],
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 4_000_000
MAX_MESSAGE_CHARACTERS = env.int("MAX_MESSAGE_CHARACTERS", default=200_000)
IDEMPOTENCY_KEEP_HOURS = 24

# Inference ------------------------------------------------------------------------------------------------------------

MODEL_FLEET = env.str("MODEL_FLEET", default="large=http://127.0.0.1:8101;small=http://127.0.0.1:8102")
HAS_MODEL_FLEET = bool(env.str("MODEL_FLEET", default=""))
"""Whether it was said; what was not said is not brought into the catalogue's tables."""
MODEL_API_KEY = env.str("MODEL_API_KEY", default="")
DEFAULT_MODEL = env.str("DEFAULT_MODEL", default="")
"""The alias used when none is named; empty means the first of `MODEL_FLEET`."""
SYSTEM_INSTRUCTIONS = env.str("SYSTEM_INSTRUCTIONS", default="You are a helpful assistant. Answer clearly and briefly.")
MAX_ANSWER_TOKENS = env.int("MAX_ANSWER_TOKENS", default=1024)
GRACE_SECONDS = env.float("GRACE_SECONDS", default=5.0)
"""How long a generation goes on after the last client that watched it went away."""
CHECKPOINT_SECONDS = env.float("CHECKPOINT_SECONDS", default=2.0)
LEASE_SECONDS = env.float("LEASE_SECONDS", default=5.0)
"""A running generation whose worker has not renewed its lease for this long is given to another worker."""
QUEUE_DEADLINE_SECONDS = env.float("QUEUE_DEADLINE_SECONDS", default=120.0)
BACKGROUND_DEADLINE_SECONDS = env.float("BACKGROUND_DEADLINE_SECONDS", default=600.0)
"""How long a message waits for a model server at most, a person's and one of the `background` class."""
INFERENCE_WORKERS = env.int("INFERENCE_WORKERS", default=0)
"""How many workers `run_all` starts; 0 means as many as fit."""
WORKER_CONCURRENCY = env.int("WORKER_CONCURRENCY", default=1024)
WORKER_DRAIN_SECONDS = env.float("WORKER_DRAIN_SECONDS", default=10.0)
"""How long a worker that is told to stop lets its answers go on; then it leaves them to others."""
KEEP_ALIVE_SECONDS = env.float("KEEP_ALIVE_SECONDS", default=15.0)
ANSWER_CACHE_SECONDS = env.int("ANSWER_CACHE_SECONDS", default=0)
"""How long an answer to a first message is kept for others of the same tier who ask the same; 0: not at all."""
CONTEXT_CACHE_SECONDS = env.int("CONTEXT_CACHE_SECONDS", default=3600)
"""How long the read part of an active conversation is kept in Redis; 0: not at all."""
BACKGROUND_MODEL = env.str("BACKGROUND_MODEL", default="")
"""The alias that writes titles and summaries; empty means `small` where there is one, or else the default model."""
MOST_MEMORIES = env.int("MOST_MEMORIES", default=100)
MOST_MEMORY_TOKENS = env.int("MOST_MEMORY_TOKENS", default=200)
"""How many memories a user may have, and how long each may be."""
MEMORY_REVIEW_DAYS = env.int("MEMORY_REVIEW_DAYS", default=180)
"""A memory that nobody has confirmed or changed for so long is offered for review."""
TEMPORARY_KEEP_HOURS = env.int("TEMPORARY_KEEP_HOURS", default=24)
"""How long after its last message a temporary conversation is deleted."""
EXPORT_KEEP_DAYS = env.int("EXPORT_KEEP_DAYS", default=7)
"""How long the file of an export can be fetched."""
MAX_IMPORT_BYTES = env.int("MAX_IMPORT_BYTES", default=500 * 1024 * 1024)
"""How large a file may be that conversations are imported from."""
STREAM_KEEP_SECONDS = 3600
"""Lifetime of a generation's token stream in Redis after its last event."""

# Background work ------------------------------------------------------------------------------------------------------

_redis_is_a_socket = urlsplit(REDIS_URL).scheme == "unix"
CELERY_BROKER_URL = (
    REDIS_URL.replace("unix://", "redis+socket://").replace("?db=", "?virtual_host=")
    if _redis_is_a_socket
    else REDIS_URL
)
CELERY_TASK_DEFAULT_QUEUE = "celery"
BULK_QUEUE = "bulk"
"""What may take minutes has workers of its own, so that what takes milliseconds never waits for it."""
CELERY_TASK_ROUTES = {
    name: {"queue": BULK_QUEUE}
    for name in (
        "accounts.tasks.erase_from_store",
        "accounts.tasks.end_erasure",
        "conversations.tasks.read_import",
        "conversations.tasks.write_export",
    )
}
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "global_keyprefix": f"{REDIS_KEY_PREFIX}:celery:",
    # A task longer than this runs twice; a killed worker's tasks come back after the restore interval.
    "visibility_timeout": 3600,
    "unacked_restore_interval": 10,
    "unacked_restore_throttle": 5,
}
CELERY_TASK_TIME_LIMIT = 600
CELERY_BEAT_SCHEDULE = {
    "delete-expired-idempotency-keys": {
        "task": "conversations.tasks.delete_expired_idempotency_keys",
        "schedule": timedelta(hours=1),
    },
    "give-up-overdue-generations": {
        "task": "conversations.tasks.give_up_overdue_generations",
        "schedule": timedelta(seconds=15),
        "options": {"expires": 15},
    },
    "release-orphaned-reservations": {
        "task": "conversations.tasks.release_orphaned_reservations",
        "schedule": timedelta(minutes=1),
        "options": {"expires": 60},
    },
    "delete-outlived-conversations": {
        "task": "conversations.tasks.delete_outlived_conversations",
        "schedule": timedelta(minutes=5),
        "options": {"expires": 300},
    },
    "delete-outlived-memories": {
        "task": "conversations.tasks.delete_outlived_memories",
        "schedule": timedelta(hours=6),
    },
    "sweep-errands": {
        "task": "conversations.tasks.sweep_errands",
        "schedule": timedelta(seconds=30),
        "options": {"expires": 30},
    },
    "look-after-neglected-answers": {
        "task": "conversations.tasks.look_after_neglected",
        "schedule": timedelta(minutes=5),
        "options": {"expires": 300},
    },
    "push-forgotten-overages": {
        "task": "accounts.stripe.tasks.push_forgotten_overages",
        "schedule": timedelta(hours=1),
    },
    "forget-old-stripe-events": {
        "task": "accounts.stripe.tasks.forget_old_events",
        "schedule": timedelta(hours=24),
    },
    "compare-with-stripe": {"task": "accounts.stripe.tasks.compare_with_stripe", "schedule": timedelta(hours=24)},
    "take-up-erasures": {
        "task": "accounts.tasks.take_up_erasures",
        "schedule": timedelta(minutes=1),
        "options": {"expires": 60},
    },
    "delete-outlived-receipts": {
        "task": "accounts.tasks.delete_outlived_receipts",
        "schedule": timedelta(hours=24),
    },
    "take-up-transfers": {
        "task": "conversations.tasks.take_up_transfers",
        "schedule": timedelta(minutes=1),
        "options": {"expires": 60},
    },
    "delete-expired-exports": {
        "task": "conversations.tasks.delete_expired_exports",
        "schedule": timedelta(hours=1),
    },
    "write-down-key-uses": {
        "task": "accounts.tasks.write_down_key_uses",
        "schedule": timedelta(seconds=20),
        "options": {"expires": 20},
    },
    "close-months": {"task": "accounts.tasks.close_months", "schedule": timedelta(hours=1)},
    "end-unpaid-plans": {"task": "accounts.tasks.end_unpaid_plans", "schedule": timedelta(hours=1)},
    "send-billing-mails": {
        "task": "accounts.tasks.send_billing_mails",
        "schedule": timedelta(minutes=1),
        "options": {"expires": 60},
    },
    "clear-expired-sessions": {"task": "accounts.tasks.clear_expired_sessions", "schedule": timedelta(hours=6)},
    "end-due-suspensions": {"task": "accounts.tasks.end_due_suspensions", "schedule": timedelta(minutes=1)},
    "mail-owed-invitations": {
        "task": "accounts.tasks.mail_owed_invitations",
        "schedule": timedelta(minutes=1),
        "options": {"expires": 60},
    },
    "count-reservations-again": {"task": "accounts.tasks.count_reservations_again", "schedule": timedelta(minutes=1)},
    "roll-up-recent-usage": {
        "task": "accounts.tasks.roll_up_usage",
        "args": (2,),
        "schedule": timedelta(minutes=5),
        "options": {"expires": 300},
    },
    "roll-up-usage-of-weeks": {"task": "accounts.tasks.roll_up_usage", "args": (35,), "schedule": timedelta(days=1)},
}

# Pages ----------------------------------------------------------------------------------------------------------------

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "/static/"
WHITENOISE_ALLOW_ALL_ORIGINS = False
STATIC_ROOT = Path(env.str("STATIC_ROOT", default=str(DATA_DIR / "static")))
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "chatsite.npm_files.NpmFilesFinder",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "chatsite.static_storage.StaticFilesStorage"},
}
NPM_FILES: dict[str, str] = {
    "js/vendor/markdown-it.js": "markdown-it/dist/browser/markdown-it.esm.min.mjs",
    "js/vendor/markdown-it.esm.min.mjs.map": "markdown-it/dist/browser/markdown-it.esm.min.mjs.map",
}
"""Which files of `node_modules` are served: `static path → path below node_modules` (`chatsite/npm_files.py`)."""

# Safety of the pages --------------------------------------------------------------------------------------------------

SECURE_CSP: dict[str, list[str]] = {
    "default-src": [CSP.SELF],
    "script-src": [CSP.SELF, CSP.NONCE],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF, "data:"],
    "connect-src": [CSP.SELF],
    "object-src": [CSP.NONE],
    "base-uri": [CSP.NONE],
    # A browser also asks this where a form is answered by a redirect, as the sign-in through a provider is.
    "form-action": [CSP.SELF, *([OIDC_SIGN_IN_ORIGIN] if OIDC_SIGN_IN_ORIGIN else [])],
    "frame-ancestors": [CSP.NONE],
}
PAGE_CSP = SECURE_CSP | {"require-trusted-types-for": ["'script'"], "trusted-types": ["server-fragments"]}
"""For the product's own pages. The admin and the API's page bring scripts that know no Trusted Types."""
if STRIPE_SECRET_KEY:
    # A form of the billing page leads to Stripe's own pages.
    PAGE_CSP["form-action"] = [*SECURE_CSP["form-action"], "https://checkout.stripe.com", "https://billing.stripe.com"]
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
HTTPS = env.bool("HTTPS", default=not DEBUG)
"""Whether people reach the site by HTTPS; only a production try-out behind plain HTTP turns it off."""
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = env.bool("SECURE_SSL_REDIRECT", default=False)
# Probes ask each process directly, not through the proxy that speaks HTTPS.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
SECURE_HSTS_SECONDS = env.int("SECURE_HSTS_SECONDS", default=31_536_000 if HTTPS else 0)
if env.bool("TRUST_PROXY_HEADERS", default=False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    ALLAUTH_TRUSTED_PROXY_COUNT = 1

# Whether the subdomains speak HTTPS, and whether browsers are to know before the first visit, is for the host's owner.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

METRICS_NETWORKS = env.list("METRICS_NETWORKS", default=["127.0.0.0/8", "::1/128"])
METRICS_DIRECTORY = env.str("PROMETHEUS_MULTIPROC_DIR", default="")
"""Where the processes of one machine keep their numbers together (`prometheus_client` reads the same variable)."""
WORKER_METRICS_HOST = env.str("WORKER_METRICS_HOST", default="127.0.0.1")
WORKER_METRICS_PORT = env.int("WORKER_METRICS_PORT", default=0)
"""Where a worker answers its own numbers; 0: nowhere."""

# OpenTelemetry reads its variables by itself; without an endpoint nothing of it is loaded but its no-op interface.
TRACING = bool(
    env.str("OTEL_EXPORTER_OTLP_ENDPOINT", default="") or env.str("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", default="")
)
if TRACING:
    INSTALLED_APPS.append("chatsite.tracing.TracingConfig")
    for _chain in (MIDDLEWARE, PROGRAM_MIDDLEWARE):
        _chain.insert(_chain.index("chatsite.middleware.request_id") + 1, "chatsite.tracing.trace_requests")

LOGGING_CONFIG = None
configure_logging(json=env.bool("LOG_JSON", default=not DEBUG), level=env.str("LOG_LEVEL", default="INFO"))
