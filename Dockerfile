# By digest too: --build-arg NODE_IMAGE=node:24.21.0-bookworm-slim@sha256:…
ARG NODE_IMAGE=node:24.21.0-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY client/package.json client/
COPY sandbox/package.json sandbox/
COPY deploy/image/package.json deploy/image/
# No install scripts: esbuild's binary comes as a package of its own.
RUN npm ci --ignore-scripts --workspace deploy/image
COPY tsconfig*.json ./
COPY scripts scripts
COPY src src
COPY sandbox sandbox
RUN node scripts/build.ts --node

FROM ${NODE_IMAGE}
WORKDIR /app
ENV NODE_ENV=production HOST=0.0.0.0 ADMIN_HOST=127.0.0.1
COPY LICENSE deploy/image/health.pl ./
COPY --from=build /app/dist ./
USER node
EXPOSE 8787
# As often and as patient as the probes of deploy/kubernetes.
HEALTHCHECK --start-period=30s --start-interval=1s --interval=10s --timeout=3s --retries=3 CMD ["perl", "health.pl"]
# With that much room (in MB) for what is new, a start collects hardly any garbage.
CMD ["node", "--min-semi-space-size=16", "portico.mjs"]
ARG SOURCE
ARG REVISION
LABEL org.opencontainers.image.title="Portico" \
  org.opencontainers.image.description="A backend-for-frontend gateway on Hono, for Node and Cloudflare Workers." \
  org.opencontainers.image.licenses="MIT" \
  org.opencontainers.image.version="0.3.0" \
  org.opencontainers.image.source="${SOURCE}" \
  org.opencontainers.image.revision="${REVISION}"
