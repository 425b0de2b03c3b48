/** A field of an object that is only there when it has a value. */

/** The field, where there is a value for it. */
export function present<Key extends string, Value>(
  key: Key,
  value: Value | undefined,
): { readonly [name in Key]?: Value } {
  return value === undefined ? {} : ({ [key]: value } as { readonly [name in Key]?: Value })
}
