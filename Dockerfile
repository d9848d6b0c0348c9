# One image for every process of the product; compose.yaml and the Procfile say which command makes which.

FROM node:22-slim AS page
WORKDIR /page
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --omit=dev --no-audit --no-fund

FROM python:3.13-slim
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 DEBUG=false DATA_DIR=/srv/data STATIC_ROOT=/srv/static
RUN useradd --system --uid 10001 chat && install -d -o chat -g chat /srv/data /srv/static
WORKDIR /srv/chat
COPY requirements.txt ./
RUN pip install --no-cache-dir --require-hashes -r requirements.txt
COPY --from=page /page/node_modules node_modules
COPY . .
RUN SECRET_KEY=only-to-collect-the-static-files-while-the-image-is-being-built ALLOWED_HOSTS=localhost \
    python manage.py collectstatic --noinput --verbosity 0
USER chat
EXPOSE 8000
CMD ["python", "-m", "chatsite.web", "-b", "0.0.0.0", "-p", "8000", "chatsite.asgi:application"]
