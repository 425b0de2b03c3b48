/** The routes on which text is generated, and how each is asked: what clients for volume draw from. */

const messages = (text: string) => [{ role: 'user', content: text }]

const PROMPTS = {
  '/v1/chat/completions': (text: string): object => ({ messages: messages(text) }),
  '/v1/completions': (text: string): object => ({ prompt: text }),
  '/v1/responses': (text: string): object => ({ input: text }),
  '/v1/messages': (text: string): object => ({ messages: messages(text), max_tokens: 64 }),
} as const

export type GenerationPath = keyof typeof PROMPTS
export const GENERATION_PATHS = Object.keys(PROMPTS) as readonly GenerationPath[]

/** The members of a body that ask for a continuation of `text` there. */
export function promptOf(path: GenerationPath, text: string): object {
  return PROMPTS[path](text)
}
