/* matrix.h - of the cells of a matrix that takes long one of so many is tried, as the build says;
 * or each.
 */
#ifndef LAB_MATRIX_H
#define LAB_MATRIX_H

#ifndef DUE_MATRIX_EVERY
#define DUE_MATRIX_EVERY 1
#endif

#endif
