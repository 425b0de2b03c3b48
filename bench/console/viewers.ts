/** The browsers' side of a console, in a process of its own: takes everything and looks at nothing. */
import { get } from 'node:http'
import { answers } from '../../test/support/node-child.ts'

const [url = '', count = '1'] = process.argv.slice(2)
let bytes = 0

/** Resolves when its first piece has come. */
function view(): Promise<void> {
  return new Promise((resolve) => {
    get(`${url}/live`, { agent: false }, (response) => {
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        resolve()
      })
    })
  })
}

const joined = Promise.all(Array.from({ length: Number(count) }, view))
answers({ joined: () => joined.then(() => true), bytes: () => bytes })
