/* What sources take from the catalogue of operations: the name of the package that the built-in ones are in.
 * Generated sources spell operations and parameters as strings. */
#ifndef OPENQNN_QNN_OP_DEF_H
#define OPENQNN_QNN_OP_DEF_H

#define QNN_OP_PACKAGE_NAME_QTI_AISW "qti.aisw"

#endif
