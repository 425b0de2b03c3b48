/** Any server with OpenAI's routes and no known metrics page: Sluice then relies on its own ledger alone. */
import { defineEngine, OPENAI_ROUTES } from './openai-base.ts'

export const openai = defineEngine({
  kind: 'openai',
  healthPath: '/v1/models',
  routes: [...OPENAI_ROUTES, 'responses', 'embeddings'],
  probe: (servedName) => ({
    path: '/v1/chat/completions',
    body: JSON.stringify({ model: servedName, messages: [{ role: 'user', content: '1' }], max_tokens: 1 }),
  }),
})
