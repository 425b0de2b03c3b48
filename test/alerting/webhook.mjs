/** A webhook that hears what Alertmanager tells. */
import { createServer } from 'node:http'

/** Hears what Alertmanager tells, and keeps it. */
export async function startWebhook(say) {
  const heard = []
  const server = createServer((request, response) => {
    const parts = []
    request.on('data', (part) => parts.push(part))
    request.on('end', () => {
      for (const alert of JSON.parse(Buffer.concat(parts)).alerts) {
        heard.push({ ...alert, path: request.url })
        say(`webhook ${request.url}: ${alert.status} ${alert.labels.alertname} (${alert.labels.severity})`)
        if (alert.status === 'firing') say(`    ${alert.annotations.summary}`)
      }
      response.end()
    })
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { heard, port: server.address().port, close: () => server.close() }
}
