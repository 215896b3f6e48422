/** `true` if two types are the same, else `false`. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- two such functions are assignable only where A and B are the same
export type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
