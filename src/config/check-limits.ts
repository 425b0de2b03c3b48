/** Checks addresses, limits and timeouts against each other. */
import { isIP } from 'node:net'
import type { CheckContext } from './checks.ts'
import type { Address } from './config.ts'
import { formatAddress, formatDuration, formatSize } from './units.ts'

/** Guessing a shorter token is a matter of patience. */
const SHORTEST_TOKEN = 16

/** True when only this machine reaches the address. */
function isLoopback({ host }: Address): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

export function checkLimits(context: CheckContext): void {
  checkAdmin(context)
  checkSizes(context)
  checkTimes(context)
}

function checkAdmin(context: CheckContext): void {
  const { admin, listen } = context.file
  const token = admin.token || undefined
  if (!isLoopback(admin.listen) && token === undefined) {
    const message = `the admin port on ${formatAddress(admin.listen)} is open to others and has no token`
    context.error(['admin', 'listen'], message, 'set admin.token, or listen on 127.0.0.1')
  }
  if (token !== undefined && token.length < SHORTEST_TOKEN) {
    context.warn(
      ['admin', 'token'],
      `a token under ${SHORTEST_TOKEN} characters can be guessed`,
      'run `openssl rand -hex 32`',
    )
  }
  const taken = { traffic: listen, 'the admin port': admin.listen }
  checkPort(context, 'listen', admin.listen, { traffic: listen })
  if (admin.agent !== undefined) checkPort(context, 'agent', admin.agent, taken)
}

/** An address of the admin section may not be where another one listens already. */
function checkPort(
  context: CheckContext,
  key: 'listen' | 'agent',
  address: Address,
  taken: Readonly<Record<string, Address>>,
): void {
  for (const [who, other] of Object.entries(taken)) {
    const meet = address.host === other.host || [address.host, other.host].some((host) => isAny(host))
    if (address.port === 0 || address.port !== other.port || !meet) continue
    context.error(['admin', key], `${who} already listens on this port`, 'choose another port for it')
  }
}

const isAny = (host: string) => host === '0.0.0.0' || host === '::'

function checkSizes(context: CheckContext): void {
  const { body, buffered, waiting } = context.file.limits
  if (body > buffered) {
    const message = `a body of ${formatSize(body)} never fits into the ${formatSize(buffered)} of limits.buffered`
    context.error(['limits', 'body'], message, 'lower it, or raise limits.buffered')
  } else if (body > waiting.bytes) {
    const message = `a body of ${formatSize(body)} is larger than everything that may wait (${formatSize(waiting.bytes)})`
    context.warn(['limits', 'body'], message, 'lower it, or raise limits.waiting.bytes')
  }
  if (waiting.bytes > buffered) {
    const message = `limits.buffered (${formatSize(buffered)}) is reached before these ${formatSize(waiting.bytes)}`
    context.warn(['limits', 'waiting', 'bytes'], message, 'raise limits.buffered, or lower this')
  }
}

function checkTimes(context: CheckContext): void {
  const { limits, timeouts } = context.file
  const requestMs = limits.request
  const request = `limits.request (${formatDuration(requestMs)})`
  for (const key of ['first_byte', 'between_bytes', 'drain'] as const) {
    if (timeouts[key] <= requestMs) continue
    context.warn(
      ['timeouts', key],
      `${formatDuration(timeouts[key])} is longer than ${request}`,
      'it never comes into force',
    )
  }
  if (timeouts.connect > timeouts.first_byte) {
    const message = `connecting may take longer than the first byte (${formatDuration(timeouts.first_byte)})`
    context.warn(['timeouts', 'connect'], message, 'lower it')
  }
  if (timeouts.drain < timeouts.between_bytes) {
    const message = `a stream may be silent for ${formatDuration(timeouts.between_bytes)}, longer than draining lasts`
    context.warn(['timeouts', 'drain'], message, 'raise it to timeouts.between_bytes or above')
  }
  if (timeouts.heartbeat_after >= timeouts.first_byte) {
    const message = 'no stream is silent for so long: first_byte ends it before'
    context.warn(['timeouts', 'heartbeat_after'], message, 'lower it below timeouts.first_byte')
  }
}
