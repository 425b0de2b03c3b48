# Builds with all dependencies, ships with those of production only; runs without root and on a read-only root.
FROM node:24-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
RUN npm run build && rm -f dist/.tsbuildinfo && npm prune --omit=dev --no-audit --no-fund

FROM node:24-bookworm-slim
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Sluice" \
      org.opencontainers.image.description="A streaming reverse proxy that keeps LLM servers inside their latency promises." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV NODE_ENV=production
WORKDIR /app
COPY package.json LICENSE ./
COPY --from=build /build/node_modules ./node_modules
COPY --from=build /build/dist ./dist
# Where slo.state_file may live; a volume put here keeps this owner.
RUN install -d -o 65532 -g 65532 -m 0700 /var/lib/sluice
# A number, so that Kubernetes can see that it is not root.
USER 65532:65532
EXPOSE 8080 9090
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
  CMD ["node", "/app/dist/cli/main.js", "healthcheck"]
ENTRYPOINT ["node", "/app/dist/cli/main.js"]
CMD ["serve", "-c", "/etc/sluice/sluice.yaml"]
