/** Writes plain values as YAML with a comment on top that says where the file comes from. */
import { stringify } from 'yaml'

/** One document a value. Long lines stay whole, and texts of several lines are blocks. */
export function yamlText(comment: string, ...documents: readonly object[]): string {
  const texts = documents.map((document) =>
    stringify(document, { lineWidth: 0, aliasDuplicateObjects: false }),
  )
  return `${comment.trim().replaceAll(/^/gm, '# ')}\n${texts.join('---\n')}`
}
